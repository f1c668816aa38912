import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Plugin } from 'vite';

const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENCE_FILE = /^(licen[cs]e|copying|notice)/i;
const RULE = '-'.repeat(80);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** Write the licences of the packages whose code is in the built files. Fails for a package that states none. */
export function thirdPartyNotices(fileName: string): Plugin {
  return {
    name: 'third-party-notices',
    apply: 'build',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
      const folders = modules.map((id) => PACKAGE.exec(id.replace(/^\0/, '').split('?')[0]!)?.[0]);
      const packages = [...new Set(folders.filter((folder) => folder !== undefined && existsSync(folder)))];
      const notices = new Set(packages.map((folder) => describePackage(folder!)));
      this.emitFile({ type: 'asset', fileName, source: [intro(notices.size), ...[...notices].sort()].join(`\n${RULE}\n`) });
    },
  };
}

function intro(count: number): string {
  return `This dashboard contains code of ${count} packages, under these licences.\n`;
}

function describePackage(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  const files = readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .sort();
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0) texts.push(licenceOfReadme(folder));
  if (!license && !texts.join('')) throw new Error(`${name} ${version} states no licence`);
  const title = `${name} ${version}${license ? ` (${license})` : ''}`;
  return `${title}\n\n${texts.filter(Boolean).join('\n\n') || 'The package has no other text about its licence.'}\n`;
}

function licenceOfReadme(folder: string): string {
  const readme = readdirSync(folder).find((file) => /^readme/i.test(file));
  const text = readme ? readFileSync(join(folder, readme), 'utf8') : '';
  return /^#+\s*licen[cs]e.*\n([\s\S]*?)(?=^#|$(?![\s\S]))/im.exec(text)?.[1]?.trim() ?? '';
}
