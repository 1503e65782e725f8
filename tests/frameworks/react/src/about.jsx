import { Link } from "react-router-dom";
import { usePage } from "./page.jsx";

export default function About() {
  const page = usePage("about");
  return page && (
    <>
      <h1>{page.title}</h1>
      <p>{page.text}</p>
      <Link to="/information">Information</Link> <Link to="/gone">Old offers</Link>{" "}
      <Link to="/articles/lost">The lost one</Link>
    </>
  );
}
