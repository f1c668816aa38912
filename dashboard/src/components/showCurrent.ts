/** Scroll to the link of the present page, which a phone's width may hide. */
export function showCurrent(links: HTMLElement | null): void {
  links?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
}
