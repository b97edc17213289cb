import "./token.js";
import { html } from "htm/preact";
import { render } from "preact";
import { App } from "./app.js";
import { isServed, loadPage } from "./provider.js";
import { Served } from "./served.js";
import { Listing } from "./views/listing.js";

const place = /** @type {HTMLElement} */ (document.getElementById("app"));
if (isServed) render(html`<${Served} />`, place);
else {
  render(html`<p class="state" role="status">Loading …</p>`, place);
  loadPage().then(
    (page) => render(page.tables ? html`<${Listing} page=${page} tables=${page.tables} />` : html`<${App} page=${page} />`, place),
    (error) => render(html`<p class="state" role="alert">This report cannot be read: ${String(error.message ?? error)}</p>`, place),
  );
}
