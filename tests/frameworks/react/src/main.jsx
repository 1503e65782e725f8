import { lazy, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Navigate, Outlet, Route, Routes, useParams } from "react-router-dom";
import { Missing, usePage } from "./page.jsx";

const About = lazy(() => import("./about.jsx"));

function Frame() {
  return (
    <>
      <nav>
        <Link to="/">Begin</Link> <Link to="/about">About</Link>
      </nav>
      <main>
        <Suspense fallback={<p>One moment</p>}>
          <Outlet />
        </Suspense>
      </main>
    </>
  );
}

function List() {
  const page = usePage("list");
  return page && (
    <>
      <h1>{page.title}</h1>
      <p>{page.text}</p>
      <ul>
        {page.items.map((item) => (
          <li key={item.name}>
            <Link to={`/articles/${item.name}`}>{item.title}</Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function Article() {
  return (
    <article>
      <Outlet />
    </article>
  );
}

function ArticleText() {
  const { name } = useParams();
  const page = usePage(`articles/${name}`);
  if (!page) return null;
  if (page.missing) return <Missing />;
  return (
    <>
      <h1>{page.title}</h1>
      <p>{page.text}</p>
      {page.notes && <Link to="notes">Notes</Link>}
    </>
  );
}

function ArticleNotes() {
  const { name } = useParams();
  const page = usePage(`articles/${name}/notes`);
  return page && (
    <section>
      <h2>{page.title}</h2>
      <p>{page.text}</p>
    </section>
  );
}

createRoot(document.getElementById("root")).render(
  <BrowserRouter>
    <Routes>
      <Route element={<Frame />}>
        <Route index element={<List />} />
        <Route path="about" element={<About />} />
        <Route path="information" element={<Navigate to="/about" replace />} />
        <Route path="articles/:name" element={<Article />}>
          <Route index element={<ArticleText />} />
          <Route path="notes" element={<ArticleNotes />} />
        </Route>
        <Route path="*" element={<Missing />} />
      </Route>
    </Routes>
  </BrowserRouter>,
);
