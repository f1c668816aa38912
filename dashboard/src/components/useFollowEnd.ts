import { useCallback, useEffect, useRef, useState, type RefObject } from 'react';

const END_PIXELS = 60;

/**
 * Keep a scrolling element at its end while it grows, unless its reader scrolls up. Only a move upwards counts as that:
 * growth between a move to the end and its event leaves the element above its end, too.
 */
export function useFollowEnd(frame: RefObject<HTMLElement | null>, growth: unknown) {
  const [isAtEnd, setAtEnd] = useState(true);
  const last = useRef(0);
  const toEnd = useCallback(() => frame.current?.scrollTo({ top: frame.current.scrollHeight }), [frame]);
  useEffect(() => {
    if (isAtEnd) toEnd();
  }, [growth, isAtEnd, toEnd]);
  const onScroll = () => {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = frame.current ?? {};
    if (scrollHeight - scrollTop - clientHeight < END_PIXELS) setAtEnd(true);
    else if (scrollTop < last.current) setAtEnd(false);
    last.current = scrollTop;
  };
  /** Go to the end and stay there. */
  const follow = useCallback(() => {
    setAtEnd(true);
    toEnd();
  }, [toEnd]);
  return { isAtEnd, onScroll, follow };
}
