/**
 * Lets libraries work under the content security policy, which allows styles by a nonce and no `style` attributes in
 * markup. Imported first, before any library makes a style element.
 */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';

const createElement = Document.prototype.createElement;
Document.prototype.createElement = function (this: Document, ...given: Parameters<typeof createElement>) {
  const element = createElement.apply(this, given);
  if (element instanceof HTMLStyleElement) element.setAttribute('nonce', nonce); // has no effect after insertion
  return element;
} as typeof createElement;

const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name: string, value: string) {
  if (name === 'style' && this instanceof HTMLElement) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

/** The nonce of styles, for libraries that take it (CodeMirror's `EditorView.cspNonce`). */
export const styleNonce = nonce;
