import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useEffectEvent, useRef } from 'react';

import { styleNonce } from '../app/csp';
import { loadLanguage } from './editorLanguages';
import { problemMarks, showProblems, type LineProblem } from './editorProblems';
import styles from './Editor.module.css';

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.atom], color: 'var(--warn)' },
  { tag: [tags.comment, tags.meta], color: 'var(--muted)' },
  { tag: tags.heading, fontWeight: '650' },
  { tag: tags.strong, fontWeight: '650' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.link, tags.url], color: 'var(--accent)' },
  { tag: tags.invalid, color: 'var(--danger)' },
]);
const THEME = EditorView.theme({
  '&': { height: '100%', fontSize: '13.5px', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--page)', color: 'var(--muted)', borderRight: '1px solid var(--line)' },
  '.cm-panels': { backgroundColor: 'var(--page)', color: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-soft) !important' },
});

interface Props {
  label: string;
  value: string;
  onChange?: (value: string) => void;
  /** Saves with Ctrl+S. */
  onSave?: () => void;
  /** The ending of the file's name, which decides how it is coloured. */
  language?: string;
  readOnly?: boolean;
  /** Lines to mark. */
  problems?: readonly LineProblem[];
}

const NO_PROBLEMS: readonly LineProblem[] = [];

/** A text editor. Escape and then Tab leave it, as a hint for the keyboard says. */
export function Editor({ label, value, onChange, onSave, language = '', readOnly = false, problems = NO_PROBLEMS }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const calls = useRef({ onChange, onSave });
  calls.current = { onChange, onSave };
  const currentText = useEffectEvent(() => value);
  useEffect(() => {
    const highlighting = new Compartment();
    const made = new EditorView({
      parent: host.current!,
      state: EditorState.create({ doc: currentText(), extensions: extensions(label, readOnly, calls, highlighting.of([])) }),
    });
    view.current = made;
    void loadLanguage(language)?.then((support) => made.dispatch({ effects: highlighting.reconfigure(support) }));
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label, language, readOnly]);
  useEffect(() => {
    const now = view.current;
    if (now && now.state.doc.toString() !== value) {
      now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } });
    }
  }, [value]);
  useEffect(() => {
    if (view.current) showProblems(view.current, problems);
  }, [problems]);
  return <div ref={host} className={styles.editor} />;
}

type Calls = { current: Pick<Props, 'onChange' | 'onSave'> };

function extensions(label: string, readOnly: boolean, calls: Calls, highlighting: Extension): Extension {
  const save = () => {
    calls.current.onSave?.();
    return true;
  };
  return [
    EditorView.cspNonce.of(styleNonce),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    EditorView.lineWrapping,
    EditorState.readOnly.of(readOnly),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) calls.current.onChange?.(update.state.doc.toString());
    }),
    keymap.of([
      { key: 'Mod-s', run: save, preventDefault: true },
      ...searchKeymap,
      ...historyKeymap,
      indentWithTab,
      ...defaultKeymap,
    ]),
    history(),
    search({ top: true }),
    lineNumbers(),
    syntaxHighlighting(COLOURS),
    highlighting,
    problemMarks,
    THEME,
  ];
}
