// Fills the sections that the page has. Colours stand for time: what was measured, or else what is predicted.
const weights = data.profile ? data.profile.kernels.map((kernel) => kernel.median) : data.predicted;
if (data.profile) {
  fill("roofline", rooflineChart(data.profile));
  const zoom = document.getElementById("zoom"), place = document.getElementById("flame");
  const draw = () => { const chart = flameChart(data.profile, Number(zoom.value)); if (chart) place.replaceChildren(chart); };
  zoom.addEventListener("input", draw);
  draw();
}
if (data.model) {
  fill("graph", graphChart(data.model, weights));
  fill("memory", memoryChart(data.model));
}
