// Where the pages of a table are.
import { part, projectOf, query } from './api.js';

const elsewhere = (t, info) => query({ project: projectOf(t.name) === info.project ? '' : projectOf(t.name) });

/** tablePath is the page of a Bigtable table. */
export const tablePath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);

/** rowsPath is the page of its rows. */
export const rowsPath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}/rows` + elsewhere(t, info);

/** keysPath is the page of its heat map. */
export const keysPath = (t, info) => `/keys/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);
