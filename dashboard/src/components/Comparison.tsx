import { unifiedMergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'react';

import { styleNonce } from '../app/csp';
import styles from './Comparison.module.css';

const THEME = EditorView.theme({
  '&': { fontSize: '13px', maxHeight: '34vh', color: 'var(--text)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--muted)', border: '0' },
  '&.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--ok-soft)' },
  '&.cm-merge-b .cm-changedText': { background: 'none', fontWeight: '650' },
  '.cm-deletedChunk': { backgroundColor: 'var(--danger-soft)', color: 'var(--danger)' },
  '.cm-deletedChunk .cm-deletedText': { background: 'none', fontWeight: '650' },
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: '""' },
  '.cm-collapsedLines': { background: 'var(--hover)', color: 'var(--muted)' },
});

/** Two versions of a text as one, with lines that went and came. */
export function Comparison({ label, before, after }: { label: string; before: string; after: string }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: host.current!,
      state: EditorState.create({
        doc: after,
        extensions: [
          EditorView.cspNonce.of(styleNonce),
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorView.editable.of(false),
          EditorState.readOnly.of(true),
          EditorView.lineWrapping,
          lineNumbers(),
          unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 2, minSize: 5 } }),
          THEME,
        ],
      }),
    });
    return () => view.destroy();
  }, [label, before, after]);
  return <div ref={host} className={styles.frame} role="region" aria-label={label} />;
}
