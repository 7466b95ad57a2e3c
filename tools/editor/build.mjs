// Builds the bundle of CodeMirror for the console: node build.mjs [OUTPUT]. The output depends
// only on this folder. Without an argument it replaces the console's file, and records the hashes
// that a test of control/console compares.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const asset = join(here, '../../control/console/static/codemirror.js');
const made = await build({
  absWorkingDir: here, entryPoints: ['entry.js'], bundle: true, minify: true, format: 'esm', target: 'es2022',
  legalComments: 'none', metafile: true, write: false, outfile: 'codemirror.js',
});

/** licenses returns the packages of the bundle by the text of their license, with their copyright lines. */
function licenses(inputs) {
  const names = new Set(Object.keys(inputs).map((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
  const byText = new Map();
  for (const name of [...names].sort()) {
    const { version } = JSON.parse(readFileSync(join(here, 'node_modules', name, 'package.json')));
    const whole = readFileSync(join(here, 'node_modules', name, 'LICENSE'), 'utf8');
    const copyright = whole.match(/^Copyright .*$/m)[0];
    const terms = whole.replace(/^(The )?MIT License.*$/m, '').replace(copyright, '').trim().replace(/\s+/g, ' ');
    const of = byText.get(terms) ?? new Map();
    byText.set(terms, of.set(copyright, [...of.get(copyright) ?? [], `${name} ${version}`]));
  }
  return [...byText].map(([terms, of]) => [...of].map(([copyright, list]) => `${list.join(', ')}\n${copyright}\n`).join('\n') + `\n${terms.replace(/(.{1,98})( |$)/g, '$1\n')}`).join('\n');
}

const [{ contents }] = made.outputFiles;
const text = Buffer.concat([Buffer.from(`/*!\nCodeMirror and the packages that it uses, bundled by tools/editor.\n\n${licenses(made.metafile.inputs)}*/\n`), contents]);
writeFileSync(process.argv[2] ?? asset, text);
if (!process.argv[2]) {
  const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
  const sources = ['build.mjs', 'entry.js', 'package-lock.json', 'package.json'].map((name) => `${hash(readFileSync(join(here, name)))}  ${name}\n`);
  writeFileSync(join(here, 'sha256.txt'), sources.join('') + `${hash(text)}  ../../control/console/static/codemirror.js\n`);
}
