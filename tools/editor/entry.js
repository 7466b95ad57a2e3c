// The parts of CodeMirror that control/console/static/editor.js needs.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
export { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
export { json } from '@codemirror/lang-json';
export { yaml } from '@codemirror/lang-yaml';
export { bracketMatching, ensureSyntaxTree, HighlightStyle, indentOnInput, syntaxHighlighting, syntaxTree } from '@codemirror/language';
export { linter, lintGutter, nextDiagnostic, setDiagnostics } from '@codemirror/lint';
export { search, searchKeymap } from '@codemirror/search';
export { EditorState } from '@codemirror/state';
export { EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, placeholder } from '@codemirror/view';
export { tags } from '@lezer/highlight';
