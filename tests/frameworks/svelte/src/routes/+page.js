import { loadPage } from "$lib/page.js";

export const load = ({ fetch }) => loadPage(fetch, "list");
