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
  if (name.toLowerCase() === 'style') this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
const markup = Object.getOwnPropertyDescriptor(Element.prototype, 'innerHTML');
Object.defineProperty(Element.prototype, 'innerHTML', {
  ...markup,
  set(value) {
    markup.set.call(this, String(value).replace(/(<[a-z][^<>]*?) style="/gi, '$1 data-shim-style="'));
    for (const element of this.querySelectorAll('[data-shim-style]')) element.style.cssText = element.dataset.shimStyle;
  },
});
