// A bot on telegraf. What a bot does here stands in ../README.md.
const { Telegraf } = require("telegraf");

const bot = new Telegraf(process.env.TOKEN, { telegram: { apiRoot: process.env.BASE } });
bot.on("text", async (ctx) => {
  const text = ctx.message.text;
  if (text.startsWith("echo ")) await ctx.reply("re " + text.slice(5));
  else if (text === "document") await ctx.replyWithDocument({ source: process.env.DOCUMENT, filename: process.env.NAME });
  else if (text === "photo") await ctx.replyWithPhoto({ source: process.env.PHOTO });
  else if (text === "album")
    await ctx.replyWithMediaGroup([
      { type: "photo", media: { source: process.env.PHOTO } },
      { type: "photo", media: { source: process.env.PHOTO } },
    ]);
  else if (text === "edit") {
    const sent = await ctx.reply("first");
    await ctx.telegram.editMessageText(sent.chat.id, sent.message_id, undefined, "edited");
  }
});
bot.on("callback_query", (ctx) => ctx.answerCbQuery("toast"));
bot.catch((err) => console.error("failed:", err.message));
process.once("SIGTERM", () => bot.stop());
bot.launch(() => console.log("started"));
