import { compileSearch } from "../../base/search";
import { TextDictionary } from "../../payload/tables/text_column";
import { matchingEntries } from "../../payload/tables/text_search";
import type { SearchReply, SearchRequest, WorkerScope } from "./protocol";

const scope = self as unknown as WorkerScope<SearchRequest, SearchReply>;

scope.onmessage = ({ data: { typed, texts } }) => {
  const search = compileSearch(typed);
  const reply: SearchReply = { matching: [], found: [] };
  for (const text of texts)
    if (typeof text !== "string")
      reply.found.push(matchingEntries(new TextDictionary(text.offsets, text.bytes), search));
    else if (search.matches(text)) reply.matching.push(text);
  const buffers = reply.found.map(({ buffer }) => buffer);
  scope.postMessage(reply, buffers);
};
