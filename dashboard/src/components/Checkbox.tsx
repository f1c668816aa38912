import type { ReactNode } from 'react';

import styles from './Checkbox.module.css';

interface Props {
  isSelected: boolean;
  onChange: (isSelected: boolean) => void;
  isDisabled?: boolean;
  children: ReactNode;
}

export function Checkbox({ isSelected, onChange, isDisabled = false, children }: Props) {
  return (
    <label className={styles.row}>
      <input type="checkbox" checked={isSelected} disabled={isDisabled} onChange={(event) => onChange(event.target.checked)} />
      <span>{children}</span>
    </label>
  );
}
