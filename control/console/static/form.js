// A form for an item of DynamoDB: a line for each attribute.
import { h, button, exact, fill, jsonText, plain } from './dom.js';
import { escapes, unescapedText } from './bytes.js';
import { ordered, typeOf } from './items.js';

const json = (example) => ({ to: (x) => jsonText(x), from: (text) => JSON.parse(text), hint: example });

// types has, for each type, its label, the text of a value, the value of a text, and a hint.
const types = {
  S: { label: 'string', to: exact, from: unescapedText, hint: 'text' }, N: { label: 'number', to: String, from: (text) => text.trim(), hint: '0' }, B: { label: 'binary', to: String, from: (text) => text.trim(), hint: 'base64' },
  BOOL: { label: 'boolean', to: String, from: (text) => text === 'true', choices: ['true', 'false'] }, NULL: { label: 'null', to: () => 'null', from: () => true, choices: ['null'] },
  SS: { label: 'strings', ...json('["a", "b"]') }, NS: { label: 'numbers', ...json('["1", "2"]') }, BS: { label: 'binaries', ...json('["YQ=="]') },
  L: { label: 'list', ...json('[{"S": "a"}]') }, M: { label: 'map', ...json('{"name": {"S": "a"}}') },
};

/**
 * itemForm returns a form: el, and put(item), which shows an item, or asks for its correction if it is undefined. keys
 * are the attributes [name, type] of the key, which every item has. changed is called after each input with the item, or
 * with undefined and the reason.
 */
export function itemForm(keys, changed) {
  const lines = h('div'), el = h('div');
  const fixed = (name) => keys.some(([key]) => key === name);

  function add(name = '', value = { S: '' }) {
    const own = fixed(name);
    const names = h('input', { class: 'mono', size: 16, placeholder: 'Attribute', 'aria-label': 'Name of an attribute', title: escapes, value: exact(name), readonly: own });
    const kind = h('select', { 'aria-label': 'Type of an attribute', disabled: own }, Object.entries(types).map(([type, { label }]) => h('option', { value: type }, type === label.toUpperCase() ? type : `${type} ${label}`)));
    kind.value = typeOf(value);
    const place = h('span', { class: 'bar' });
    let field;
    const enter = (text) => {
      const { choices, hint } = types[kind.value];
      field = choices ? h('select', { 'aria-label': 'Value of an attribute' }, choices.map((c) => h('option', { value: c, selected: c === text }, c))) : h('input', { class: 'mono', 'aria-label': 'Value of an attribute', title: kind.value === 'S' ? escapes : 'JSON, as in an item', placeholder: hint, value: text });
      fill(place, field);
    };
    enter(types[kind.value].to(value[kind.value]));
    kind.addEventListener('input', () => enter(types[kind.value].choices ? '' : field.value));
    const line = h('div', { class: 'bar one', 'data-line': '' }, names, kind, place, own ? h('small', { class: 'w80' }, 'key') : button('Remove', () => { line.remove(); read(); }));
    line.attribute = () => {
      const attribute = unescapedText(names.value);
      try { return [attribute, { [kind.value]: types[kind.value].from(field.value) }]; } catch (err) { throw new Error(`${names.value}: ${err.message}`); }
    };
    lines.append(line);
    return names;
  }

  function read() {
    const item = {};
    try {
      for (const line of lines.children) {
        const [name, value] = line.attribute();
        if (!name) throw new Error('An attribute has no name.');
        if (Object.hasOwn(item, name)) throw new Error(`Two attributes are named ${name}.`);
        item[name] = value;
      }
    } catch (err) { return changed(undefined, err.message); }
    changed(item);
  }
  el.addEventListener('input', read);

  const form = [lines, h('div', { class: 'bar' }, button('Add attribute', () => { add().focus(); read(); }))];
  return {
    el,
    put(item) {
      const odd = item && Object.entries(item).find(([, v]) => !v || typeof v !== 'object' || !types[typeOf(v)] || Object.keys(v).length > 1);
      if (!item || odd) {
        fill(el, h('div', { class: 'note' }, odd ? `The form cannot show the attribute ${plain(odd[0])}: its value has no type.` : 'Correct the JSON first.'));
        return;
      }
      fill(lines);
      fill(el, form);
      for (const [name, value] of ordered(item, keys.map(([key]) => key))) add(name, value);
    },
  };
}
