import adapter from "@sveltejs/adapter-static";

export default {
  kit: {
    adapter: adapter({ pages: process.env.OUT, fallback: "index.html" }),
    version: { name: "kept" },
  },
};
