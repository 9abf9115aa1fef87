// A bot on grammY. What a bot does here stands in ../README.md.
const { Bot, InputFile } = require("grammy");

const bot = new Bot(process.env.TOKEN, { client: { apiRoot: process.env.BASE } });
bot.on("message:text", async (ctx) => {
  const text = ctx.message.text;
  if (text.startsWith("echo ")) await ctx.reply("re " + text.slice(5));
  else if (text === "document") await ctx.replyWithDocument(new InputFile(process.env.DOCUMENT, process.env.NAME));
  else if (text === "photo") await ctx.replyWithPhoto(new InputFile(process.env.PHOTO));
  else if (text === "album")
    await ctx.replyWithMediaGroup([
      { type: "photo", media: new InputFile(process.env.PHOTO) },
      { type: "photo", media: new InputFile(process.env.PHOTO) },
    ]);
  else if (text === "edit") {
    const sent = await ctx.reply("first");
    await ctx.api.editMessageText(sent.chat.id, sent.message_id, "edited");
  }
});
bot.on("callback_query:data", (ctx) => ctx.answerCallbackQuery({ text: "toast" }));
bot.catch((err) => console.error("failed:", err.message));
process.once("SIGTERM", () => bot.stop());
bot.start({ onStart: () => console.log("started") });
