import { loadPage } from "$lib/page.js";

export const load = ({ fetch, params }) => loadPage(fetch, `articles/${params.name}/notes`);
