import type { PackedTexts } from "../../payload/tables/text_column";

/** Message to the worker that searches, which replies with the texts that match, each once. */
export interface SearchRequest {
  typed: string;
  texts: readonly (string | PackedTexts)[];
}

export interface SearchReply {
  matching: string[];
}
