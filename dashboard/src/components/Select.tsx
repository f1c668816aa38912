import { Check, ChevronDown } from 'lucide-react';
import { Button, Label, ListBox, ListBoxItem, Popover, Select as AriaSelect, SelectValue, Text } from 'react-aria-components';

import field from './Field.module.css';
import menu from './Menu.module.css';
import styles from './Select.module.css';

export interface Choice<T extends string> {
  readonly id: T;
  readonly label: string;
  readonly description?: string;
}

interface Props<T extends string> {
  label: string;
  choices: readonly Choice<T>[];
  value: T;
  onChange: (value: T) => void;
  hint?: string;
  isDisabled?: boolean;
}

export function Select<T extends string>({ label, choices, value, onChange, hint, isDisabled = false }: Props<T>) {
  return (
    <AriaSelect className={field.field!} value={value} isDisabled={isDisabled} onChange={(key) => onChange(key as T)}>
      <Label className={field.label!}>{label}</Label>
      <Button className={`${field.input} ${styles.button}`}>
        <SelectValue className={styles.value!}>{choices.find((choice) => choice.id === value)?.label}</SelectValue>
        <ChevronDown size={16} aria-hidden />
      </Button>
      {hint && (
        <Text slot="description" className={field.hint!}>
          {hint}
        </Text>
      )}
      <Popover className={menu.popover!}>
        <ListBox className={menu.menu!} items={choices}>
          {(choice) => (
            <ListBoxItem className={menu.item!} textValue={choice.label}>
              {({ isSelected }) => (
                <>
                  <Check size={16} aria-hidden visibility={isSelected ? 'visible' : 'hidden'} />
                  <span>
                    <Text slot="label">{choice.label}</Text>
                    {choice.description && (
                      <Text slot="description" className={styles.description!}>
                        {choice.description}
                      </Text>
                    )}
                  </span>
                </>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
