// A bot on node-telegram-bot-api 2. What a bot does here stands in ../README.md.
const { readFileSync } = require("node:fs");
const { Bot, InputFile } = require("node-telegram-bot-api");

const file = (path, filename) => new InputFile(readFileSync(path), { filename });
const bot = new Bot(process.env.TOKEN, { apiRoot: process.env.BASE });
bot.on("message", async (ctx) => {
  const chat_id = ctx.message.chat.id;
  const text = ctx.message.text ?? "";
  if (text.startsWith("echo ")) await bot.api.sendMessage({ chat_id, text: "re " + text.slice(5) });
  else if (text === "document") await bot.api.sendDocument({ chat_id, document: file(process.env.DOCUMENT, process.env.NAME) });
  else if (text === "photo") await bot.api.sendPhoto({ chat_id, photo: file(process.env.PHOTO, "p.png") });
  else if (text === "album")
    await bot.api.sendMediaGroup({
      chat_id,
      media: [
        { type: "photo", media: file(process.env.PHOTO, "a.png") },
        { type: "photo", media: file(process.env.PHOTO, "b.png") },
      ],
    });
  else if (text === "edit") {
    const sent = await bot.api.sendMessage({ chat_id, text: "first" });
    await bot.api.editMessageText({ chat_id, message_id: sent.message_id, text: "edited" });
  }
});
bot.on("callback_query", (ctx) => ctx.answerCallbackQuery({ text: "toast" }));
process.on("unhandledRejection", (err) => console.error("failed:", err.message));
process.once("SIGTERM", () => bot.stop());
bot.startPolling().catch((err) => {
  console.error("failed:", err.message);
  process.exit(1);
});
console.log("started");
