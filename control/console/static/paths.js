// The paths of the pages of a table.
import { part, projectOf, query } from './api.js';
import { textOf } from './bytes.js';

const project = (t, info) => projectOf(t.name) === info.project ? '' : projectOf(t.name);
const elsewhere = (t, info) => query({ project: project(t, info) });

/** tablePath returns the path of a Bigtable table's page. */
export const tablePath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);

/** rowsPath returns the path of its rows. */
export const rowsPath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}/rows` + elsewhere(t, info);

/** keysPath returns the path of its heat map. */
export const keysPath = (t, info) => `/keys/${part(t.instance)}/${part(t.table)}` + elsewhere(t, info);

/** tableNamed returns the table with a resource name. */
export const tableNamed = (name) => ({ name, instance: name.split('/')[3], table: name.split('/')[5] });

/** rowPath returns the path of the page of its rows, from a key on. */
export const rowPath = (t, info, key) => `/t/${part(t.instance)}/${part(t.table)}/rows` + query({ project: project(t, info), prefix: textOf(key, 4096) });

/** historyPath returns the path of the history of a row. */
export const historyPath = (t, info, key) => `/history/${part(t.instance)}/${part(t.table)}` + query({ project: project(t, info), key: textOf(key, 4096) });

/** itemHistoryPath returns the path of the history of an item, which is that of its row. */
export const itemHistoryPath = (table, item) => `/history/${part(table.slice(table.lastIndexOf('/') + 1))}` + query({ item: JSON.stringify(item) });
