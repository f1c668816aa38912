import { mergeConfig, type Plugin } from 'vite';

import dashboard from './vite.config';

const CATALOGUE = /\/src\/i18n\/\w+\.en\.ts$/;
const DECLARATION = 'export const en =';
const PSEUDO = `
const lengthen = (text) => '[' + text + ' ' + '~~~~ '.repeat(Math.ceil((text.length * 0.4) / 5)).trim() + ']';
const pseudo = (entry) =>
  typeof entry === 'string' ? lengthen(entry)
  : typeof entry === 'function' ? (...values) => pseudo(entry(...values))
  : typeof entry === 'object' && entry !== null ? Object.fromEntries(Object.entries(entry).map(([key, inner]) => [key, pseudo(inner)]))
  : entry;
export const en = pseudo(source);
`;

/** Put every English text into brackets and lengthen it by 40 %, so that a test finds other text and what overflows. */
function pseudoLocale(): Plugin {
  return {
    name: 'pseudo-locale',
    enforce: 'pre',
    transform(code, id) {
      if (!CATALOGUE.test(id)) return null;
      if (!code.includes(DECLARATION)) throw new Error(`${id} has no ${DECLARATION}`);
      return `${code.replace(DECLARATION, 'const source =')}${PSEUDO}`;
    },
  };
}

export default mergeConfig(dashboard, { plugins: [pseudoLocale()], build: { minify: false } });
