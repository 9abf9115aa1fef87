// A bot on gramio. What a bot does here stands in ../README.md.
const { readFileSync } = require("node:fs");
const { Bot, MediaInput } = require("gramio");

const file = (path, name) => new File([readFileSync(path)], name);
const bot = new Bot(process.env.TOKEN, { api: { baseURL: process.env.BASE + "/bot" } });
bot.on("message", async (ctx) => {
  const text = ctx.text ?? "";
  if (text.startsWith("echo ")) await ctx.send("re " + text.slice(5));
  else if (text === "document") await bot.api.sendDocument({ chat_id: ctx.chat.id, document: file(process.env.DOCUMENT, process.env.NAME) });
  else if (text === "photo") await bot.api.sendPhoto({ chat_id: ctx.chat.id, photo: file(process.env.PHOTO, "p.png") });
  else if (text === "album")
    await bot.api.sendMediaGroup({
      chat_id: ctx.chat.id,
      media: [MediaInput.photo(file(process.env.PHOTO, "a.png")), MediaInput.photo(file(process.env.PHOTO, "b.png"))],
    });
  else if (text === "edit") {
    const sent = await bot.api.sendMessage({ chat_id: ctx.chat.id, text: "first" });
    await bot.api.editMessageText({ chat_id: sent.chat.id, message_id: sent.message_id, text: "edited" });
  }
});
bot.on("callback_query", (ctx) => ctx.answer("toast"));
bot.onError(({ error }) => console.error("failed:", error.message));
process.once("SIGTERM", async () => {
  await bot.stop();
  process.exit(0);
});
bot.start().then(() => console.log("started"));
