// As `fallback` asks: one shell for each path.
export const ssr = false;
