/** Speed and acceptance while an answer grows: two numbers, two small charts, told in words too. */

import { byId } from "./dom.js";

const WINDOW_MS = 400;
const WIDTH = 100;
const HEIGHT = 24;
const SVG = "http://www.w3.org/2000/svg";

export class Gauges {
  constructor() {
    this.place = byId("live");
    this.speed = byId("speed");
    this.acceptance = byId("acceptance");
    this.speedChart = chart(byId("speed-chart"));
    this.acceptanceChart = chart(byId("acceptance-chart"));
    this.clear();
  }

  /** Nothing is known, and nothing is shown. */
  clear() {
    this.samples = [];
    this.points = [];
    this.place.hidden = true;
  }

  /** Take the timings of one chunk. */
  add(timings) {
    this.samples.push(timings);
    // One moment says little: what is shown is of the last instant's tokens together.
    while (this.samples.length > 2 && this.samples[1].predicted_ms < timings.predicted_ms - WINDOW_MS) {
      this.samples.shift();
    }
    const since = this.samples[0];
    const ms = timings.predicted_ms - since.predicted_ms;
    const guessed = timings.draft_n - since.draft_n;
    if (ms <= 0) return;
    this.points.push({
      ms: timings.predicted_ms,
      speed: ((timings.predicted_n - since.predicted_n) * 1000) / ms,
      accepted: guessed > 0 ? (timings.draft_n_accepted - since.draft_n_accepted) / guessed : 0,
    });
    this.show(this.points.at(-1).speed, timings);
  }

  /** Take the timings of the whole answer. */
  finish(timings) {
    if (this.points.length) this.show(timings.predicted_per_second, timings);
  }

  show(speed, timings) {
    const share = timings.draft_n ? timings.draft_n_accepted / timings.draft_n : 0;
    const top = Math.max(...this.points.map((point) => point.speed));
    this.place.hidden = false;
    this.speed.textContent = Math.round(speed);
    this.acceptance.textContent = `${Math.round(share * 100)} %`;
    this.draw(this.speedChart, (point) => point.speed / (top || 1));
    this.draw(this.acceptanceChart, (point) => point.accepted);
    this.speedChart.picture.setAttribute(
      "aria-label",
      `Speed while answering: now ${Math.round(speed)}, at most ${Math.round(top)} tokens per second`,
    );
    this.acceptanceChart.picture.setAttribute(
      "aria-label",
      `${timings.draft_n_accepted} of ${timings.draft_n} guesses of the draft were accepted`,
    );
  }

  draw({ line, area }, height) {
    const from = this.points[0].ms;
    const length = this.points.at(-1).ms - from || 1;
    const places = this.points.map((point) => {
      const x = ((point.ms - from) / length) * WIDTH;
      const y = HEIGHT - 1 - height(point) * (HEIGHT - 3);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    line.setAttribute("points", places.join(" "));
    area.setAttribute("points", `0,${HEIGHT} ${places.join(" ")} ${WIDTH},${HEIGHT}`);
  }
}

function chart(picture) {
  const make = (tag, name) => {
    const made = document.createElementNS(SVG, tag);
    made.setAttribute("class", name);
    picture.append(made);
    return made;
  };
  return { picture, area: make("polygon", "area"), line: make("polyline", "line") };
}
