import type { ReactNode } from 'react';
import { Menu as AriaMenu, MenuItem as AriaMenuItem, MenuTrigger, Popover, type MenuItemProps } from 'react-aria-components';

import styles from './Menu.module.css';

/** A button and the menu that it opens. `trigger` is a Button, `children` are MenuItems. */
export function Menu({ trigger, label, children }: { trigger: ReactNode; label: string; children: ReactNode }) {
  return (
    <MenuTrigger>
      {trigger}
      <Popover className={styles.popover!}>
        <AriaMenu className={styles.menu!} aria-label={label}>
          {children}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

export function MenuItem({ danger = false, ...rest }: Omit<MenuItemProps, 'className'> & { danger?: boolean }) {
  return <AriaMenuItem {...rest} className={`${styles.item} ${danger ? styles.danger : ''}`} />;
}
