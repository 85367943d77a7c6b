import { compileSearch } from "../../base/search";
import { TextDictionary } from "../../payload/tables/text_column";
import { matchingEntries } from "../../payload/tables/text_search";
import type { SearchReply, SearchRequest } from "./protocol";

/** The worker's own global scope. The DOM types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<SearchRequest>) => void) | null;
  postMessage(reply: SearchReply, transfer: Transferable[]): void;
}

const scope = self as unknown as WorkerScope;

scope.onmessage = ({ data: { typed, texts } }) => {
  const search = compileSearch(typed);
  const reply: SearchReply = { matching: [], found: [] };
  for (const text of texts)
    if (typeof text !== "string")
      reply.found.push(matchingEntries(new TextDictionary(text.offsets, text.bytes), search));
    else if (search.matches(text)) reply.matching.push(text);
  scope.postMessage(
    reply,
    reply.found.map(({ buffer }) => buffer),
  );
};
