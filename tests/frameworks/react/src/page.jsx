import { useEffect, useState } from "react";

/** The data of a page, once they have come. */
export function usePage(name) {
  const [page, setPage] = useState(null);
  useEffect(() => {
    let used = true;
    setPage(null);
    fetch(`/api/${name}.json`)
      .then((answer) => (answer.ok ? answer.json() : { missing: true }))
      .then((found) => {
        if (!used) return;
        if (!found.missing) document.title = found.title;
        setPage(found);
      });
    return () => {
      used = false;
    };
  }, [name]);
  return page;
}

export function Missing() {
  useEffect(() => {
    document.title = "Nothing here";
  }, []);
  return <p>There is no such page.</p>;
}
