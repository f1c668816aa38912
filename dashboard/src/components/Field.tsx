import type { Ref } from 'react';
import { FieldError, Input, Label, Text, TextArea, TextField as AriaTextField, type TextFieldProps } from 'react-aria-components';

import styles from './Field.module.css';

interface Props extends Omit<TextFieldProps, 'className' | 'style' | 'children'> {
  label: string;
  hint?: string;
  /** What is wrong with the value, in words. */
  error?: string;
  placeholder?: string;
  /** Number of lines; more than one makes it a text area. */
  lines?: number;
  inputRef?: Ref<HTMLInputElement & HTMLTextAreaElement>;
  monospace?: boolean;
}

export function TextField({ label, hint, error, placeholder, lines = 1, inputRef, monospace, ...rest }: Props) {
  const input = `${styles.input} ${monospace ? styles.mono : ''}`;
  return (
    <AriaTextField {...rest} isInvalid={error !== undefined} validationBehavior="aria" className={styles.field!}>
      <Label className={styles.label!}>{label}</Label>
      {lines > 1 ? (
        <TextArea className={input} rows={lines} placeholder={placeholder} ref={inputRef} />
      ) : (
        <Input className={input} placeholder={placeholder} ref={inputRef} />
      )}
      {hint && (
        <Text slot="description" className={styles.hint!}>
          {hint}
        </Text>
      )}
      <FieldError className={styles.error!}>{error}</FieldError>
    </AriaTextField>
  );
}
