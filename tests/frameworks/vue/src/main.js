import { createApp } from "vue";
import { createRouter, createWebHistory } from "vue-router";
import Frame from "./Frame.vue";
import List from "./views/List.vue";
import Article from "./views/Article.vue";
import ArticleText from "./views/ArticleText.vue";
import ArticleNotes from "./views/ArticleNotes.vue";
import Missing from "./views/Missing.vue";

const router = createRouter({
  history: createWebHistory(),
  routes: [
    { path: "/", component: List },
    { path: "/about", component: () => import("./views/About.vue") },
    { path: "/information", redirect: "/about" },
    {
      path: "/articles/:name",
      component: Article,
      children: [
        { path: "", component: ArticleText },
        { path: "notes", component: ArticleNotes },
      ],
    },
    { path: "/:path(.*)*", component: Missing },
  ],
});

createApp(Frame).use(router).mount("#app");
