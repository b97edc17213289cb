// What is inside is drawn once the answers are there that it reads; see `lazyAnswers`.
import { html } from "htm/preact";
import { Component } from "preact";
import { printable } from "./numbers.js";
import { forgetFailures } from "./server.js";

/** @extends {Component<{children: any}, {waits: boolean, why: string}>} */
export class Ready extends Component {
  constructor() {
    super();
    forgetFailures(); // who comes back to a view asks again
    this.state = { waits: false, why: "" };
  }

  /** @param {unknown} thrown */
  componentDidCatch(thrown) {
    if (thrown instanceof Promise) {
      this.setState({ waits: true, why: "" });
      thrown.then(() => this.setState({ waits: false, why: "" }));
    } else this.setState({ waits: false, why: thrown instanceof Error ? thrown.message : String(thrown) });
  }

  /** @param {{children: any}} before */
  componentDidUpdate(before) {
    if (before.children === this.props.children || !(this.state.why || this.state.waits)) return;
    this.setState({ waits: false, why: "" }); // these may read other answers
  }

  render() {
    if (this.state.why) return html`<p class="state" role="alert">${printable(this.state.why)}</p>`;
    if (this.state.waits) return html`<p class="state" role="status">Loading …</p>`;
    return this.props.children;
  }
}
