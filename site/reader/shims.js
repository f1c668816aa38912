// Lets the reader work under the content security policy: styles by a nonce, no style attributes in markup, no eval.
globalThis.__zod_globalConfig = { jitless: true };
const nonce = document.querySelector('meta[property="csp-nonce"]').nonce;
const createElement = Document.prototype.createElement;
Document.prototype.createElement = function (...given) {
  const element = createElement.apply(this, given);
  if (element instanceof HTMLStyleElement) element.setAttribute('nonce', nonce); // has no effect after insertion
  return element;
};
const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
  if (name === 'style' && 'style' in this) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
