import { error } from "@sveltejs/kit";

/** The data of a page. */
export async function loadPage(fetch, name) {
  const answer = await fetch(`/api/${name}.json`);
  if (!answer.ok) error(404);
  return { page: await answer.json() };
}
