import { StateEffect, StateField, type EditorState, type Extension } from '@codemirror/state';
import { Decoration, EditorView, WidgetType, type DecorationSet } from '@codemirror/view';

/** What is wrong with a line, counted from 1. */
export interface LineProblem {
  readonly line: number;
  readonly message: string;
}

const setProblems = StateEffect.define<readonly LineProblem[]>();
const MARK = Decoration.line({ class: 'cm-problem' });

class MessageWidget extends WidgetType {
  constructor(readonly message: string) {
    super();
  }

  override eq(other: MessageWidget): boolean {
    return other.message === this.message;
  }

  override toDOM(): HTMLElement {
    const shown = document.createElement('div');
    shown.className = 'cm-problem-message';
    shown.textContent = this.message;
    return shown;
  }
}

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, { changes, effects, state }) {
    const set = effects.find((effect) => effect.is(setProblems));
    return set ? decorate(state, set.value as readonly LineProblem[]) : decorations.map(changes);
  },
  provide: (self) => EditorView.decorations.from(self),
});

function decorate({ doc }: EditorState, problems: readonly LineProblem[]): DecorationSet {
  const ranges = problems
    .filter(({ line }) => line >= 1 && line <= doc.lines)
    .flatMap(({ line, message }) => {
      const { from, to } = doc.line(line);
      const widget = Decoration.widget({ widget: new MessageWidget(message), block: true, side: 1 });
      return [MARK.range(from), widget.range(to)];
    });
  return Decoration.set(ranges, true);
}

/** Marks lines, with what is wrong below each. */
export const problemMarks: Extension = [
  field,
  EditorView.theme({
    '.cm-problem': { backgroundColor: 'var(--danger-soft)', boxShadow: 'inset 3px 0 var(--danger)' },
    '.cm-problem-message': {
      padding: '1px 6px 4px',
      backgroundColor: 'var(--danger-soft)',
      boxShadow: 'inset 3px 0 var(--danger)',
      color: 'var(--danger)',
      fontFamily: 'system-ui, sans-serif',
      whiteSpace: 'pre-line',
      overflowWrap: 'anywhere',
    },
  }),
];

/** Mark these lines instead of those marked before, and show the first one. */
export function showProblems(view: EditorView, problems: readonly LineProblem[]): void {
  const [first] = problems;
  const scroll =
    first && first.line <= view.state.doc.lines
      ? [EditorView.scrollIntoView(view.state.doc.line(first.line).from, { y: 'center' })]
      : [];
  view.dispatch({ effects: [setProblems.of(problems), ...scroll] });
}
