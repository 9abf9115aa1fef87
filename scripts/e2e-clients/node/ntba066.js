// A bot on node-telegram-bot-api 0.66. What a bot does here stands in ../README.md.
const TelegramBot = require("ntba066");

const bot = new TelegramBot(process.env.TOKEN, { polling: true, baseApiUrl: process.env.BASE });
bot.on("text", async (m) => {
  const text = m.text;
  if (text.startsWith("echo ")) await bot.sendMessage(m.chat.id, "re " + text.slice(5));
  else if (text === "document") await bot.sendDocument(m.chat.id, process.env.DOCUMENT, {}, { filename: process.env.NAME, contentType: "text/plain" });
  else if (text === "photo") await bot.sendPhoto(m.chat.id, process.env.PHOTO);
  else if (text === "album")
    await bot.sendMediaGroup(m.chat.id, [
      { type: "photo", media: process.env.PHOTO },
      { type: "photo", media: process.env.PHOTO },
    ]);
  else if (text === "edit") {
    const sent = await bot.sendMessage(m.chat.id, "first");
    await bot.editMessageText("edited", { chat_id: sent.chat.id, message_id: sent.message_id });
  }
});
bot.on("callback_query", (q) => bot.answerCallbackQuery(q.id, { text: "toast" }));
bot.on("polling_error", (err) => console.error("polling:", err.message));
process.on("unhandledRejection", (err) => console.error("failed:", err.message));
process.once("SIGTERM", async () => {
  await bot.stopPolling();
  process.exit(0);
});
console.log("started");
