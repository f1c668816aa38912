import { Button as AriaButton, type ButtonProps } from 'react-aria-components';

import styles from './Button.module.css';

interface Props extends Omit<ButtonProps, 'className' | 'style'> {
  kind?: 'primary' | 'plain' | 'danger' | 'quiet';
  /** A square button that shows only an icon; give it an `aria-label`. */
  iconOnly?: boolean;
}

export function Button({ kind = 'plain', iconOnly = false, ...rest }: Props) {
  return <AriaButton {...rest} className={`${styles.button} ${styles[kind]} ${iconOnly ? styles.icon : ''}`} />;
}

/** The look of a button, for links. */
export function buttonClass(kind: 'primary' | 'plain' = 'plain'): string {
  return `${styles.button} ${styles[kind]}`;
}
