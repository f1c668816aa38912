/** Return the address of a page's section in the docs: `/agents/$id/chat` has "Agent: chat" in `guides/dashboard.md`. */
export function helpAddress(route: string): string {
  const words = route
    .replace(/^\/agents\/\$id\//, '/agent/')
    .split('/')
    .filter((word) => word !== '' && !word.startsWith('$'));
  return `/docs/guides/dashboard/#${words.join('-') || 'home'}`;
}
