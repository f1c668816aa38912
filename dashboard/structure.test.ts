import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const FILE_LINES = 300;
const FUNCTION_LINES = 60;
const CATALOGUE = /^i18n\/\w+\.(en|de)\.ts$/; // each exports its texts by the name of their language

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  .map((name) => ts.createSourceFile(name, readFileSync(join('src', name), 'utf8'), ts.ScriptTarget.Latest, true));

const lineAt = (source: ts.SourceFile, position: number) => source.getLineAndCharacterOfPosition(position).line + 1;

/** Return functions with more lines between their braces than allowed. */
function longFunctions(source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const start = lineAt(source, node.body.getStart());
      const lines = lineAt(source, node.body.end) - start - 1;
      if (lines > FUNCTION_LINES) found.push(`${source.fileName}:${start}: ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Return the names that a file exports and defines itself. */
function exportedNames(source: ts.SourceFile): readonly string[] {
  const exported = source.statements.filter(
    (statement) =>
      ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword),
  );
  return exported.flatMap((statement) => {
    if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText());
    return 'name' in statement ? [(statement.name as ts.Identifier).text] : [];
  });
}

describe('structure', () => {
  it('reads the sources', () => expect(sources.length).toBeGreaterThan(200));

  it('keeps files small', () => {
    const sizes = sources.map((source) => ({ name: source.fileName, lines: lineAt(source, source.end) - 1 }));
    expect(sizes.filter(({ lines }) => lines > FILE_LINES)).toEqual([]);
  });

  it('keeps functions small', () =>
    expect(sources.filter(({ fileName }) => !fileName.includes('.test.')).flatMap(longFunctions)).toEqual([]));

  it('defines each exported name once', () => {
    const files = new Map<string, string[]>();
    for (const source of sources) {
      if (CATALOGUE.test(source.fileName)) continue;
      for (const name of exportedNames(source)) files.set(name, [...(files.get(name) ?? []), source.fileName]);
    }
    expect([...files].filter(([, places]) => places.length > 1)).toEqual([]);
  });
});
