import { ref, watchEffect } from "vue";

/** The data of a page, once they have come; `name` is a function. */
export function usePage(name) {
  const page = ref(null);
  watchEffect(async () => {
    const answer = await fetch(`/api/${name()}.json`);
    page.value = answer.ok ? await answer.json() : { missing: true };
    if (answer.ok) document.title = page.value.title;
  });
  return page;
}
