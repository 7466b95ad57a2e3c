// The paths of the pages of a table.
import { part, projectOf, query } from './api.js';

const elsewhere = (t, info) => query({ project: projectOf(t.name) === info.project ? '' : projectOf(t.name) });

/** tablePath returns the path of a Bigtable table's page. */
export const tablePath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);

/** rowsPath returns the path of its rows. */
export const rowsPath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}/rows` + elsewhere(t, info);

/** keysPath returns the path of its heat map. */
export const keysPath = (t, info) => `/keys/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);
