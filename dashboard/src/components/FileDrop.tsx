import { Upload } from 'lucide-react';
import type { ReactNode } from 'react';
import { DropZone, FileTrigger, type FileDropItem } from 'react-aria-components';

import { Button } from './Button';
import styles from './FileDrop.module.css';

/** An area that takes dropped files. */
export function FileDrop({
  label,
  onFiles,
  isDisabled,
  children,
}: {
  label: string;
  onFiles: (files: readonly File[]) => void;
  isDisabled: boolean;
  children: ReactNode;
}) {
  return (
    <DropZone
      className={styles.zone!}
      aria-label={label}
      isDisabled={isDisabled}
      onDrop={async ({ items }) => {
        const dropped = items.filter((item): item is FileDropItem => item.kind === 'file');
        onFiles(await Promise.all(dropped.map((item) => item.getFile())));
      }}
    >
      {({ isDropTarget }) => (
        <>
          {children}
          {isDropTarget && <div className={styles.hint}>{label}</div>}
        </>
      )}
    </DropZone>
  );
}

/** A button that asks for files. */
export function FileButton({
  label,
  onFiles,
  isDisabled,
}: {
  label: string;
  onFiles: (files: readonly File[]) => void;
  isDisabled: boolean;
}) {
  return (
    <FileTrigger allowsMultiple onSelect={(chosen) => onFiles([...(chosen ?? [])])}>
      <Button kind="primary" isDisabled={isDisabled}>
        <Upload size={17} aria-hidden /> {label}
      </Button>
    </FileTrigger>
  );
}
