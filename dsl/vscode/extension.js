// Starts `tidegate lsp` and connects VS Code to it.
"use strict";

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** @type {LanguageClient | undefined} */
let client;

async function start() {
  const settings = workspace.getConfiguration("tidegate");
  const limits = settings.get("limits");
  const server = {
    command: settings.get("path") || "tidegate",
    args: limits ? ["lsp", "--limits", limits] : ["lsp"],
  };
  client = new LanguageClient("tidegate", "Tidegate", server, {
    documentSelector: [{ language: "tide" }],
    synchronize: {
      // What policies are checked against: a change of it changes what is right.
      fileEvents: [
        workspace.createFileSystemWatcher("**/hosts.{yml,yaml}"),
        workspace.createFileSystemWatcher("**/limits.{yml,yaml}"),
      ],
    },
  });
  await client.start();
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("tidegate")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
};

exports.deactivate = stop;
