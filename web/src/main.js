import "./token.js";
import { html } from "htm/preact";
import { render } from "preact";
import { App } from "./app.js";
import { isServed, loadPage } from "./provider.js";
import { Served } from "./served.js";

const place = /** @type {HTMLElement} */ (document.getElementById("app"));
if (isServed) render(html`<${Served} />`, place);
else {
  render(html`<p class="state" role="status">Loading …</p>`, place);
  loadPage().then(
    (page) => render(html`<${App} page=${page} />`, place),
    (error) => render(html`<p class="state" role="alert">This report cannot be read: ${String(error.message ?? error)}</p>`, place),
  );
}
