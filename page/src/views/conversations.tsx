// The conversations of this browser: open one, rename it, delete it.
import { useState } from "preact/hooks";
import { dropConversation, openConversation, startConversation, useOpenId } from "../ask-model";
import { nameOf, renameConversation, useConversations, type Conversation } from "../conversations";
import { t, tn } from "../i18n";
import { current, useShared } from "../state";
import { Drawer, Icon, takeFocus } from "../ui";

/** Those of the workspace, the newest first; nothing where there are none. */
export function Conversations({ onOpen }: { onOpen?: () => void }) {
  const { workspace } = useShared();
  const all = useConversations().filter((one) => one.workspace === workspace);
  const begin = () => {
    startConversation();
    location.hash = "#/ask";
    onOpen?.();
  };
  if (!all.length) return null;
  return (
    <section class="conversations" aria-label={t("Conversations")}>
      <div class="row spread">
        <h2 class="label">{t("Conversations")}</h2>
        <button class="round quiet" aria-label={t("New conversation")} title={t("New conversation")} onClick={begin}>
          <Icon name="plus" />
        </button>
      </div>
      <ul>
        {all.map((one) => (
          <Item key={one.id} one={one} onOpen={onOpen} />
        ))}
      </ul>
    </section>
  );
}

function Item({ one, onOpen }: { one: Conversation; onOpen?: () => void }) {
  const shown = useOpenId() === one.id;
  const [doing, setDoing] = useState<"" | "rename" | "delete">("");
  const open = () => {
    if (!shown) openConversation(one);
    location.hash = "#/ask";
    onOpen?.();
  };
  if (doing === "rename") {
    const save = (name: string) => (renameConversation(one.id, name), setDoing(""));
    return (
      <li>
        <input
          ref={takeFocus}
          aria-label={t("Name of the conversation")}
          value={nameOf(one)}
          maxLength={200}
          onBlur={(e) => save(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "Enter") e.currentTarget.blur();
            if (e.key !== "Escape") return;
            e.preventDefault(); // the list stays open
            setDoing("");
          }}
        />
      </li>
    );
  }
  if (doing === "delete")
    return (
      <li class="row">
        <button class="quiet danger" onClick={() => dropConversation(one.id)}>
          {t("Delete for good")}
        </button>
        <button class="quiet" ref={takeFocus} onClick={() => setDoing("")}>
          {t("Keep")}
        </button>
      </li>
    );
  const when = new Date(one.changed).toLocaleString(current().language);
  return (
    <li>
      <button class="open" aria-current={shown ? "true" : undefined} title={`${nameOf(one)}\n${when}`} onClick={open}>
        {nameOf(one)}
      </button>
      <button class="round" aria-label={t("Rename: {name}", { name: nameOf(one) })} title={t("Rename")} onClick={() => setDoing("rename")}>
        <Icon name="pen" />
      </button>
      <button class="round" aria-label={t("Delete {name}", { name: nameOf(one) })} title={t("Delete")} onClick={() => setDoing("delete")}>
        <Icon name="trash" />
      </button>
    </li>
  );
}

/** On a phone, where the list does not stand beside what was asked. */
export function ConversationsButton() {
  const { workspace } = useShared();
  const count = useConversations().filter((one) => one.workspace === workspace).length;
  const [listed, setListed] = useState(false);
  return (
    <>
      {count > 0 ? (
        <button class="quiet narrow" onClick={() => setListed(true)}>
          <Icon name="ask" /> {tn(count, "1 conversation", "{n} conversations")}
        </button>
      ) : (
        <span />
      )}
      {listed && (
        <Drawer title={t("Conversations")} onClose={() => setListed(false)}>
          <Conversations onOpen={() => setListed(false)} />
        </Drawer>
      )}
    </>
  );
}
