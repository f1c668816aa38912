import type { Language } from '@codemirror/language';

import type { LineProblem } from '../../../components/editorProblems';

type Tree = ReturnType<Language['parser']['parse']>;
type SyntaxNode = Tree['topNode'];

/** What an engine says about a configuration: marks for its lines, and what belongs to none. */
export interface ConfigProblems {
  readonly marked: readonly LineProblem[];
  readonly others: readonly string[];
}

const MAPPINGS = new Set(['ObjectExpression', 'BlockMapping', 'FlowMapping']);
const SEQUENCES = new Set(['ArrayExpression', 'BlockSequence', 'FlowSequence']);
const ENTRIES = new Set(['Property', 'Pair']);
const IGNORED = new Set(['[', ']', ',', '-', 'LineComment', 'BlockComment', 'Comment']);
const ROOT = '<root>';

/** Return the ending that tells the editor how a configuration is written: JSON with comments, or YAML. */
export const configLanguage = (text: string): 'json' | 'yaml' => (/^\s*(\{|\/\/|\/\*)/.test(text) ? 'json' : 'yaml');

/** Find the lines that the output of an engine is about: `path: message`, or a number of a line. */
export async function locateProblems(text: string, output: string): Promise<ConfigProblems> {
  const isJson = configLanguage(text) === 'json';
  const language = isJson
    ? (await import('@codemirror/lang-javascript')).javascriptLanguage // JSON5 is a part of JavaScript
    : (await import('@codemirror/lang-yaml')).yamlLanguage;
  const before = isJson ? '(' : ''; // makes an object of what else is a block
  const tree = language.parser.parse(before + text + (isJson ? ')' : ''));
  const lineAt = (position: number) => countLines(text, position - before.length);
  const marked: LineProblem[] = [];
  const others: string[] = [];
  for (const said of output.split('\n').filter(Boolean)) {
    const [, path, message] = /^([^\s:]+): (.+)$/.exec(said) ?? [];
    const found = path === undefined || path === ROOT ? null : findEntry(tree, before + text, path);
    const number = Number(/\bline (\d+)/.exec(said)?.[1] ?? Number.NaN);
    if (found) marked.push({ line: lineAt(found.from), message: found.isWhole ? message! : said });
    else if (number >= 1 && number <= countLines(text, text.length)) marked.push({ line: number, message: said });
    else others.push(said);
  }
  const broken = marked.length === 0 ? findBroken(tree) : null;
  return broken === null ? { marked, others } : { marked: [{ line: lineAt(broken), message: output }], others: [] };
}

function countLines(text: string, position: number): number {
  return text.slice(0, Math.max(0, position)).split('\n').length;
}

/** Return the place of the syntax error, null if there is none. */
function findBroken(tree: Tree): number | null {
  let found: number | null = null;
  tree.iterate({
    enter: ({ type, from }) => {
      if (type.isError) found ??= from;
    },
  });
  return found;
}

/** Find the entry of a path like `agents.list.0.model`, or the nearest one around it. */
function findEntry(tree: Tree, text: string, path: string): { from: number; isWhole: boolean } | null {
  let rest = path.split(/[.[\]]/).filter(Boolean);
  let node = firstContainer(tree.topNode);
  let from: number | null = null;
  while (node && rest.length > 0) {
    const step = stepInto(node, text, rest);
    if (!step) break;
    ({ from } = step);
    rest = rest.slice(step.taken);
    node = step.value && firstContainer(step.value);
  }
  return from === null ? null : { from, isWhole: rest.length === 0 };
}

function stepInto(
  node: SyntaxNode,
  text: string,
  rest: readonly string[],
): { from: number; taken: number; value: SyntaxNode | null } | null {
  if (SEQUENCES.has(node.name)) {
    const value = children(node).filter(({ name }) => !IGNORED.has(name))[Number(rest[0])];
    return value ? { from: value.from, taken: 1, value } : null;
  }
  const entries = children(node).filter(({ name }) => ENTRIES.has(name));
  for (let taken = rest.length; taken > 0; taken -= 1) {
    const key = rest.slice(0, taken).join('.'); // keys may have dots
    const entry = entries.find(({ firstChild }) => firstChild && unquote(text.slice(firstChild.from, firstChild.to)) === key);
    if (entry) return { from: entry.from, taken, value: entry.lastChild };
  }
  return null;
}

function firstContainer(node: SyntaxNode): SyntaxNode | null {
  let one: SyntaxNode | null = node;
  while (one && !MAPPINGS.has(one.name) && !SEQUENCES.has(one.name)) {
    one = children(one).find(({ name }) => name !== '(' && !IGNORED.has(name)) ?? null;
  }
  return one;
}

function children(node: SyntaxNode): readonly SyntaxNode[] {
  const found: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) found.push(child);
  return found;
}

const unquote = (key: string): string => key.trim().replace(/^(["'])(.*)\1$/, '$2');
