import type { PackedTexts } from "../../payload/tables/text_column";

/** Message to the worker that searches. */
export interface SearchRequest {
  typed: string;
  texts: readonly (string | PackedTexts)[];
}

export interface SearchReply {
  /** The texts that match, of those that are not packed. */
  matching: string[];
  /** 1 for each text that matches, of each of the packed texts. */
  found: Uint8Array[];
}
