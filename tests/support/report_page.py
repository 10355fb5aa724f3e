# SPDX-License-Identifier: MIT
"""Pages of reports: strict about their form, and what is in them. They are HTML that is XML, too, so XML's parser finds what
HTML's would guess at."""
import json
import xml.etree.ElementTree as ElementTree

XHTML = "{http://www.w3.org/1999/xhtml}"


class Page:
    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.text = path.read_text()
        assert self.root.tag == XHTML + "html"
        assert self.text.startswith("<!DOCTYPE html>")

    def all(self, tag):
        return list(self.root.iter(XHTML + tag))

    def of(self, identity):
        (found,) = [element for element in self.root.iter() if element.get("id") == identity]
        return found

    def data(self):
        return json.loads(self.of("data").text)

    def rows(self, identity):
        return [["".join(cell.itertext()) for cell in row] for row in self.of(identity).find(XHTML + "tbody")]

    def has_no_references(self):
        """Nothing is loaded from elsewhere; each id stands once."""
        for element in self.root.iter():
            for name, value in element.attrib.items():
                if name in ("src", "href", "action", "data", "srcset", "poster"):
                    assert value.startswith(("data:", "#")), f"{element.tag} {name}={value}"
        identities = [element.get("id") for element in self.root.iter() if element.get("id")]
        assert len(identities) == len(set(identities))
        style = "".join(self.all("style")[0].itertext())
        assert "url(" not in style and "@import" not in style
        scripts = "".join("".join(script.itertext()) for script in self.all("script") if script.get("type") is None)
        for word in ("fetch(", "XMLHttpRequest", "import(", "WebSocket", "sendBeacon", "eval("):
            assert word not in scripts, word
