import { PAGES } from './navigation';
import { useIsOperator } from './useSession';

/** Return the pages of the navigation that the session may see. */
export function usePages(): readonly (typeof PAGES)[number][] {
  const isOperator = useIsOperator();
  return PAGES.filter((page) => isOperator || !('forOperator' in page));
}
