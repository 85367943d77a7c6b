import { compileSearch } from "../../base/search";
import { type PackedTexts, TextDictionary } from "../../payload/tables/text_column";
import type { SearchReply, SearchRequest } from "./search_protocol";

/** The worker's own global scope. The DOM types describe only the page's side. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<SearchRequest>) => void) | null;
  postMessage(reply: SearchReply): void;
}

const scope = self as unknown as WorkerScope;

scope.onmessage = ({ data: { typed, texts } }) => {
  const { matches } = compileSearch(typed);
  const matching = new Set<string>();
  for (const text of texts.flatMap(unpack)) if (matches(text)) matching.add(text);
  scope.postMessage({ matching: [...matching] });
};

function unpack(texts: string | PackedTexts): string | string[] {
  if (typeof texts === "string") return texts;
  const dictionary = new TextDictionary(texts.offsets, texts.bytes);
  return Array.from({ length: dictionary.length }, (_, entry) => dictionary.at(entry));
}
